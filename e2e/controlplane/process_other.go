//go:build unix && !linux

package controlplane

import "syscall"

// dieWithParent does nothing where the kernel has no means for it: the janitor alone watches the parent.
func dieWithParent(*syscall.SysProcAttr) {}
