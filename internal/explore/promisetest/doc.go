// Package promisetest explores every strategy of the catalogue and checks the catalogue's promises about it. It is
// separate from the explorer's own tests so that both can run at the same time.
package promisetest
