package process

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A reserved port is for a program that names it, as often as it starts; nobody else is given it.
func TestAReservedPortIsForWhoNamesIt(t *testing.T) {
	port, err := ReservePort(0)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Number))
	for range 2 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("cannot listen on a reserved port: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		other, err := ReservePort(0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Release() }()
		if other.Number == port.Number {
			t.Fatal("a reserved port is given to somebody else")
		}
	}
	if err := port.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReservePort(port.Number); err != nil {
		t.Errorf("a released port is not free: %v", err)
	}
}

func TestReservePortNamesThePortItCannotHave(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("unexpected address %v", listener.Addr())
	}
	if _, err := ReservePort(address.Port); err == nil || !strings.Contains(err.Error(), strconv.Itoa(address.Port)) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}
