// Package promisetest explores every promise of the catalogue. It is separate from the explorer's own
// tests so that both can run at the same time.
package promisetest
