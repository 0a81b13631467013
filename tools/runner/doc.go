// Package runner executes the jobs of docs/ci on this machine as their CI systems would, on the
// examples in Node, Python and Go.
//
// nektos/act stands in for GitHub, and firecow/gitlab-ci-local for GitLab. The schemas are those of
// GitHub's own parser, @actions/workflow-parser, and of GitLab, in gitlab-ci-local. Buildkite's own
// parser reads its pipeline. Jenkins publishes neither a schema nor a parser in Go; jenkins_test.go
// reads the few directives of the Jenkinsfile.
//
// The folder actions has local copies of the actions that action.yml uses, and the folder bin has the
// programs that a runner has or that reach the network.
package runner
