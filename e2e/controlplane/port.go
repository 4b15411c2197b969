package controlplane

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// reservedPort keeps a TCP port on 127.0.0.1 from everybody else, while a program of the same user that sets SO_REUSEPORT,
// as kube-apiserver does with --permit-port-sharing, can listen on it. The socket is bound but does not listen, so while
// the program is away connections are refused. This leaves no moment between choosing a port and using it, and the port
// stays free for the API server to come back.
type reservedPort struct {
	socket int
	number int
}

// reservePort reserves port number, or a free one if number is 0.
func reservePort(number int) (*reservedPort, error) {
	syscall.ForkLock.RLock() // No child may inherit the socket.
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("cannot reserve a port: %w", err)
	}
	port := &reservedPort{socket: socket}
	if port.number, err = port.bind(number); err != nil {
		_ = port.release() // The first error says what is wrong.
		return nil, fmt.Errorf("cannot reserve port %d on 127.0.0.1: %w", number, err)
	}
	return port, nil
}

func (p *reservedPort) bind(number int) (int, error) {
	if err := unix.SetsockoptInt(p.socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("cannot set SO_REUSEPORT: %w", err)
	}
	if err := unix.Bind(p.socket, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
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

// release gives the port back.
func (p *reservedPort) release() error {
	if err := unix.Close(p.socket); err != nil {
		return fmt.Errorf("cannot release port %d: %w", p.number, err)
	}
	return nil
}
