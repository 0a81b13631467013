// Package promisetest has one test: what the catalogue promises of each strategy is
// explored. It is apart from the explorer's own tests so that the two run at once.
package promisetest
