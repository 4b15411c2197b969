//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing, because the kernel has no means for it. A process can outlive a killed parent.
func dieWithParent(*syscall.SysProcAttr) {}
