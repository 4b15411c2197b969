package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks the file at path, and creates it if it does not exist. It waits while another holder, in this or another process,
// has the lock. release releases the lock, and so does the end of the process. The file remains.
func Lock(path string) (release func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock file: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	return file.Close, nil
}
