package rights

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("A role for an option of the monitor", func(ctx context.Context, option string, rights ...string) {
	dir, role := filepath.Join(root, "config", "rbac", "options", option), monitor+"-"+option
	Expect(of(granted(ctx), role)).To(BeEmpty(), "it is not applied by default")
	kubectl(ctx, "apply", "-k", dir)
	var got []string
	for _, g := range of(granted(ctx), role) {
		got = append(got, g.String())
	}
	var want []string
	for _, right := range rights {
		want = append(want, home+"/"+monitor+" may "+right+" everywhere (role "+role+")")
	}
	Expect(got).To(Equal(want))
	kubectl(ctx, "delete", "-k", dir)
	Expect(of(granted(ctx), role)).To(BeEmpty())
},
	Entry("creates bundles", SpecTimeout(time.Minute), "createbundles", "create k8splugin.io/resourcebundlestates"),
	Entry("sees which kinds there are", SpecTimeout(time.Minute), "discovery",
		"list apiextensions.k8s.io/customresourcedefinitions", "list apiregistration.k8s.io/apiservices",
		"watch apiextensions.k8s.io/customresourcedefinitions", "watch apiregistration.k8s.io/apiservices"),
	Entry("reads Secrets", SpecTimeout(time.Minute), "secrets", "list core/secrets", "watch core/secrets"),
	Entry("reads what has no namespace", SpecTimeout(time.Minute), "trusted",
		"list certificates.k8s.io/certificatesigningrequests", "watch certificates.k8s.io/certificatesigningrequests"),
)
