// The healthscope program: the controller of a hub, the monitor of a workload cluster, and tools for both.
package main

import (
	"os"

	"github.com/healthscope/healthscope/controllers/commands"
)

func main() { os.Exit(commands.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
