package process

import (
	"errors"
	"fmt"
	"net"
)

// OwnAddress returns an IPv4 address of this machine that is neither loopback nor link-local, because API servers do not allow
// endpoints of Services at such addresses. It returns an error if the machine has none.
func OwnAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("cannot list the addresses of this machine: %w", err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no IPv4 address that is neither loopback nor link-local")
}
