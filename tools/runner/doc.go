// Package runner executes the job of docs/ci/github-actions.yml on this machine as GitHub would, on the
// examples in Node, Python and Go. `make soak` runs its tests.
//
// The program nektos/act stands in for GitHub. The schemas of the job files are those of GitHub's own parser,
// @actions/workflow-parser. For other CI systems, the tests only read the jobs as YAML. The tests of
// internal/judge/ci/system cover the behaviour of `shop ci` in each system.
//
// The folder actions contains copies of the actions that action.yml uses. The folder bin contains
// stand-ins for programs of a runner and for programs that use the network.
package runner
