//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing where the kernel has no means for it: there, a process can outlive a parent that is killed.
func dieWithParent(*syscall.SysProcAttr) {}
