package suite

import (
	"github.com/onsi/ginkgo/v2"

	"github.com/healthscope/healthscope/e2e/process"
)

// OwnAddress returns an address of this machine that Services may have endpoints at. On a machine without one, the spec is skipped.
func OwnAddress() string {
	ginkgo.GinkgoHelper()
	address, err := process.OwnAddress()
	if err != nil {
		ginkgo.Skip(err.Error())
	}
	return address
}
