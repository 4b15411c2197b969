// Package verify holds the tests that check the project against its own rules and documentation: imports run in one direction
// only, and the documentation matches the code.
package verify
