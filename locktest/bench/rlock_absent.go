//go:build !rlock

package main

// rlockKinds: built without package rlock.
func rlockKinds() []kind { return nil }
