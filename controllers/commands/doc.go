// Package commands holds the command line of the healthscope program. A command
// reads its flags, calls the packages that do the work, and prints the result.
// The commands controller and monitor run what package app sets up.
package commands
