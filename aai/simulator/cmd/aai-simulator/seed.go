package main

import (
	"fmt"
	"os"

	"github.com/healthscope/healthscope/aai/simulator"
)

// The values of --seed that are no files.
const (
	seedBuiltIn = "builtin"
	seedNone    = "none"
)

// builtIn is what --seed builtin stands for: a cloud region with a tenant, and two VNFs with a module each.
func builtIn() []simulator.Fixture {
	region := simulator.CloudRegion("k8s-provider", "edge-region")
	region.Body["cloud-type"] = "k8s"
	return []simulator.Fixture{
		region, simulator.Tenant("k8s-provider", "edge-region", "vfw-tenant"),
		simulator.GenericVNF("vfw-1"), simulator.VFModule("vfw-1", "vfw-1-base"),
		simulator.GenericVNF("vfw-2"), simulator.VFModule("vfw-2", "vfw-2-base"),
	}
}

// fixtures returns the first inventory that a value of --seed stands for.
func fixtures(seed string) ([]simulator.Fixture, error) {
	switch seed {
	case seedBuiltIn:
		return builtIn(), nil
	case seedNone:
		return nil, nil
	}
	file, err := os.Open(seed)
	if err != nil {
		return nil, fmt.Errorf("cannot open seed file: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing is lost when closing a file that was only read
	list, err := simulator.ReadFixtures(file)
	if err != nil {
		return nil, fmt.Errorf("seed file %q: %w", seed, err)
	}
	return list, nil
}
