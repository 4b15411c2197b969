package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
)

// Build builds the program of a package of the source tree below root into a file. Like a release, it is built without cgo.
func Build(ctx context.Context, root, program, source string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, source) //nolint:gosec // Tests say what they build.
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %q: %w\n%s", source, err, out)
	}
	return nil
}

// FreePort returns a loopback port that nobody listens on right now, for a program that does not tell which one it has chosen.
func FreePort() (int, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, fmt.Errorf("cannot find a free port: %w", err)
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("cannot find a free port: unexpected address %s", l.Addr()), l.Close())
	}
	return address.Port, l.Close()
}
