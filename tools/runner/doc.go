// Package runner executes the job of docs/ci/github-actions.yml on this machine as GitHub would, on the
// examples in Node, Python and Go. `make soak` runs its tests.
//
// nektos/act stands in for GitHub. The schemas are those of GitHub's own parser, @actions/workflow-parser.
// The jobs for other CI systems are only read as YAML: internal/judge/ci/system has the tests of what
// `shop ci` does in each system.
//
// The folder actions has local copies of the actions that action.yml uses, and the folder bin has the
// programs that a runner has or that reach the network.
package runner
