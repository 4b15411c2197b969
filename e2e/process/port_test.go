package process

import (
	"net"
	"strconv"
	"testing"
)

// TestAReservedPortIsForWhoNamesIt checks that a program can listen on a reserved port repeatedly, and that the port is not
// reserved a second time.
func TestAReservedPortIsForWhoNamesIt(t *testing.T) {
	port, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Release() }()
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
		other, err := ReservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Release() }()
		if other.Number == port.Number {
			t.Fatal("a reserved port is given to somebody else")
		}
	}
}
