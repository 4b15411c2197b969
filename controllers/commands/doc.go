// Package commands implements the command line of the healthscope program: a command reads its flags, calls the packages
// that do the work, and prints the result. Package main calls it. The commands controller and monitor run what package app
// sets up. It must not do the work itself, and no other package of the program may import it.
package commands
