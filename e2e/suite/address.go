package suite

import (
	"github.com/onsi/ginkgo/v2"

	"github.com/healthscope/healthscope/e2e/process"
)

// OwnAddress returns an address of this machine that Services may use as an endpoint. It skips the spec on a machine without
// such an address.
func OwnAddress() string {
	ginkgo.GinkgoHelper()
	address, err := process.OwnAddress()
	if err != nil {
		ginkgo.Skip(err.Error())
	}
	return address
}
