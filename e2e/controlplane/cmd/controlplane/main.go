// Command controlplane compiles the programs of the test control plane (etcd, Kubernetes and kwok) into the user's cache
// directory, unless they exist there. Run it anywhere in a checkout:
//
//	go run ./e2e/controlplane/cmd/controlplane
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := assets.Build(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1) //nolint:gocritic // There is nothing left to stop.
	}
}
