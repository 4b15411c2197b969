package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port is a reserved TCP port on 127.0.0.1. The kernel assigns it to no other program, but a program can listen on it if the
// program sets SO_REUSEADDR, as Go programs do, or if it has the same user and sets SO_REUSEPORT, as kube-apiserver does with
// --permit-port-sharing. The socket of the reservation is bound but does not listen, so connections are refused while the
// program does not run. The port is reserved from its choice until Release, so no other program can take it before the program
// starts or while it restarts.
type Port struct {
	// Number is the port number.
	Number int

	socket int
}

// ReservePort reserves a free port until Release, or until the calling process ends.
func ReservePort() (*Port, error) {
	syscall.ForkLock.RLock() // No child may inherit the socket.
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("cannot reserve a port: %w", err)
	}
	port := &Port{socket: socket}
	if port.Number, err = port.bind(); err != nil {
		_ = port.Release() // The first error is the cause.
		return nil, fmt.Errorf("cannot reserve a port on 127.0.0.1: %w", err)
	}
	return port, nil
}

func (p *Port) bind() (int, error) {
	for name, option := range map[string]int{"SO_REUSEADDR": unix.SO_REUSEADDR, "SO_REUSEPORT": unix.SO_REUSEPORT} {
		if err := unix.SetsockoptInt(p.socket, unix.SOL_SOCKET, option, 1); err != nil {
			return 0, fmt.Errorf("cannot set %s: %w", name, err)
		}
	}
	if err := unix.Bind(p.socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("cannot bind: %w", err)
	}
	address, err := unix.Getsockname(p.socket)
	if err != nil {
		return 0, fmt.Errorf("cannot read the socket's address: %w", err)
	}
	bound, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("unexpected socket address %v", address)
	}
	return bound.Port, nil
}

// Release ends the reservation.
func (p *Port) Release() error {
	if err := unix.Close(p.socket); err != nil {
		return fmt.Errorf("cannot release port %d: %w", p.Number, err)
	}
	return nil
}
