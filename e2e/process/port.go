package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port is a TCP port on 127.0.0.1 that is kept from everybody else, while a program that sets SO_REUSEADDR, as those in Go
// do, or, of the same user, SO_REUSEPORT, as kube-apiserver does with --permit-port-sharing, can listen on it. The socket
// is bound but does not listen, so while the program is away connections are refused. This leaves no moment between
// choosing a port and using it, and the port stays free for the program to come back.
type Port struct {
	// Number is the port's.
	Number int

	socket int
}

// ReservePort reserves a free port, until it is released or the calling process ends.
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
		_ = port.Release() // The first error says what is wrong.
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

// Release gives the port back.
func (p *Port) Release() error {
	if err := unix.Close(p.socket); err != nil {
		return fmt.Errorf("cannot release port %d: %w", p.Number, err)
	}
	return nil
}
