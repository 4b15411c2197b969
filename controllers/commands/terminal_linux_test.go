package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens a terminal, and returns a function that closes it and returns what was written to it.
func openTerminal(t *testing.T) (terminal *os.File, written func() string) {
	t.Helper()
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	number, err := unix.IoctlGetInt(int(host.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(host.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return terminal, func() string {
		_ = terminal.Close()
		var all strings.Builder
		for buffer := make([]byte, 4096); ; {
			n, err := host.Read(buffer)
			if all.Write(buffer[:n]); err != nil {
				return strings.ReplaceAll(all.String(), "\r\n", "\n") // The error is EIO when everything has been read.
			}
		}
	}
}

// TestLongWorkShowsProgress: on a terminal, a line shows the progress and is cleared at the end. TestEveryCommand asserts that
// there is none elsewhere.
func TestLongWorkShowsProgress(t *testing.T) {
	clearKubeconfig(t)
	dead := writeFile(t, "kubeconfig", strings.ReplaceAll(contexts, "https://hub:6443", "https://127.0.0.1:1"))
	config := writeFile(t, "config.yaml", configHeader+"clusterName: provider+hub\ninventory:\n  url: http://127.0.0.1:1\n  regions: [{cluster: '*', cloudOwner: o, cloudRegionId: r, tenantId: t}]\n")
	bundle := filepath.Join(t.TempDir(), "bundle")
	for _, c := range []struct {
		args           []string
		progress, last string
	}{
		{[]string{"aai", "plan", "--config", config, "--kubeconfig", dead}, "reading scopes and bundles, and A&AI", "healthscope: cannot plan: "},
		{[]string{"support-bundle", "--kubeconfig", dead, "-o", bundle}, "reading what is known of the installation, for up to 2m0s", bundle + ": "},
	} {
		terminal, written := openTerminal(t)
		Main(c.args, nil, terminal, terminal)
		got, want := written(), clearLine+c.progress+clearLine+c.last
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: want %q first, got %q", c.args[0], want, got)
		}
	}
}
