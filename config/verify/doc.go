// Package verify holds the tests that hold the project to its own word: that
// imports run in one direction only, and that what is written down is what the
// code does.
package verify
