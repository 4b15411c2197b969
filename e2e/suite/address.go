package suite

import (
	"net"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// OwnAddress returns an address of this machine that is routed locally. API servers do not let Services have endpoints at
// loopback and link-local addresses. On a machine without one, the spec is skipped.
func OwnAddress() string {
	ginkgo.GinkgoHelper()
	addresses, err := net.InterfaceAddrs()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	ginkgo.Skip("this machine has no IPv4 address that is neither loopback nor link-local, so that no target can be reached")
	return ""
}
