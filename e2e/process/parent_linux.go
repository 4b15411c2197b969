package process

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that starts it ends, however it ends
// (PR_SET_PDEATHSIG in prctl(2)).
func dieWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGKILL
}
