package recorder_test

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// recordedApp holds the recorded keys and values that EMCO's rsync had in etcd for an app in a cluster.
type recordedApp struct {
	// applied holds the keys before the bundle was saved, and ready holds the keys of readiness. bundle is the status that was
	// saved.
	applied, ready map[string]string
	bundle         string
}

// recordedApps reads a recording, by app.
func recordedApps(name string) map[string]recordedApp {
	GinkgoHelper()
	data, err := os.ReadFile("testdata/" + name)
	Expect(err).NotTo(HaveOccurred())
	all := map[string]recordedApp{}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		app, level, _ := strings.Cut(key, "/")
		if all[app].ready == nil {
			all[app] = recordedApp{applied: map[string]string{}, ready: map[string]string{}}
		}
		switch is := all[app]; path.Base(level) {
		case "resourcesready", "resready", "ressuccess":
			is.ready[level] = value
		case "status":
			Expect(json.Unmarshal([]byte(value), &is.bundle)).To(Succeed())
			all[app] = is
		default:
			is.applied[level] = value
		}
	}
	return all
}

// readinessOf returns the keys of readiness of an app in the hub's cluster.
func (s *site) readinessOf(ctx context.Context, app string) func() map[string]string {
	at := "/context/" + s.id + "/app/" + app + "/cluster/" + home + "/"
	return func() map[string]string {
		response, err := raw.Get(ctx, at, clientv3.WithPrefix())
		Expect(err).NotTo(HaveOccurred())
		all := map[string]string{}
		for _, kv := range response.Kvs {
			if level := string(kv.Key)[len(at):]; strings.Contains(level, "ready/") || strings.Contains(level, "ressuccess/") {
				all[level] = string(kv.Value)
			}
		}
		return all
	}
}

var _ = DescribeTable("The keys of readiness are those that EMCO's rsync writes for the same bundles", func(ctx SpecContext, recording string, more, before map[string]string) {
	namespace, apps := newNamespace(ctx), recordedApps(recording)
	s := newSite(ctx, home)
	for key, value := range before {
		app, level, _ := strings.Cut(key, "/")
		apps[app].applied[level] = value
	}
	for name, app := range apps {
		s.addApp(ctx, name, home)
		for level, value := range app.applied {
			_, err := raw.Put(ctx, "/context/"+s.id+"/app/"+name+"/cluster/"+home+"/"+level, value)
			Expect(err).NotTo(HaveOccurred())
		}
		newBundle(ctx, namespace, s.id+"-"+name, s.id+"-"+name, app.bundle)
	}
	run(ctx, hubOptions{namespace: newHome(ctx), readyKeys: true})
	for name, app := range apps {
		for key, value := range more {
			if of, level, _ := strings.Cut(key, "/"); of == name {
				app.ready[level] = value
			}
		}
		Eventually(s.readinessOf(ctx, name)).Should(Equal(app.ready), name)
	}
},
	Entry("apps of each kind; EMCO looks for the DaemonSet by another name and never finds it", "installed.tsv", map[string]string{"agent/resource/agent+DaemonSet/resready/": "true"}, nil),
	Entry("an app with hooks; the one before the installation had a bundle of its own, which is gone", "hooks.tsv", nil, map[string]string{"main/resource/hook-pre-install+Job/ressuccess/": "true"}),
)
