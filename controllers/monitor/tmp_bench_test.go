package monitor_test

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

func rss() string {
	b, _ := os.ReadFile("/proc/self/status")
	var s string
	for _, l := range splitLines(string(b)) {
		if len(l) > 6 && (l[:6] == "VmRSS:" || l[:6] == "VmHWM:") {
			s += l + " "
		}
	}
	return s
}
func splitLines(s string) (out []string) {
	cur := ""
	for _, r := range s {
		if r == '\n' {
			out = append(out, cur)
			cur = ""
			continue
		}
		cur += string(r)
	}
	return
}

func bigPod(ns, name, b string) *corev1.Pod {
	p := newPod(ns, name, b)
	c := p.Spec.Containers[0]
	for i := range 10 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VAR_%d", i), Value: fmt.Sprintf("value-%d", i)})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprintf("v%d", i), MountPath: fmt.Sprintf("/mnt/%d", i)})
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i)})
	}
	d := *c.DeepCopy()
	d.Name = "side"
	p.Spec.Containers = []corev1.Container{c, d}
	return p
}

var _ = FDescribe("bench", func() {
	It("500 x 17", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		apps := 500
		var wg sync.WaitGroup
		sem := make(chan int, 16)
		for a := range apps {
			wg.Add(1)
			sem <- 1
			go func() {
				defer GinkgoRecover()
				defer wg.Done()
				defer func() { <-sem }()
				n := fmt.Sprintf("%d-app", a+1)
				create(ctx, newBundle(ns, n), newDeployment(ns, n, n), newService(ns, "s"+n, n))
				for i := range 10 {
					p := bigPod(ns, fmt.Sprintf("p%d-%s", i, n), n)
					create(ctx, p)
					setReady(ctx, p, true)
				}
				for i := range 5 {
					create(ctx, newConfigMap(ns, fmt.Sprintf("c%d-%s", i, n), n))
				}
			}()
		}
		wg.Wait()
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		fmt.Println("loaded; heap", ms.HeapAlloc>>20, rss())
		base := ms.HeapAlloc
		began := time.Now()
		m := start(ctx, monitor.Options{LeaseNamespace: ns})
		Eventually(func() int { return len(m.writes()) }, "120s").Should(BeNumerically(">=", apps))
		Eventually(func() int {
			var l v1alpha1.ResourceBundleStateList
			api.List(ctx, &l, client.InNamespace(ns))
			n := 0
			for i := range l.Items {
				if l.Items[i].Status.ResourceCount == 17 {
					n++
				}
			}
			return n
		}, "120s", "500ms").Should(Equal(apps))
		fmt.Println("settled", time.Since(began), "writes", len(m.writes()), rss())
		fmt.Println("size", len(raw(ctx, ns, "1-app")))
		time.Sleep(2 * time.Second)
		runtime.GC()
		runtime.ReadMemStats(&ms)
		fmt.Println("heap monitor", (ms.HeapAlloc-base)>>20, "writes", len(m.writes()), rss())

		// lone flips
		var lat, floor []time.Duration
		w, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: api.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		pod := &corev1.Pod{}
		watch, err := w.Watch(ctx, &v1alpha1.ResourceBundleStateList{}, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelDeploymentID: "7-app"})
		Expect(err).NotTo(HaveOccurred())
		pw, err := w.Watch(ctx, &corev1.PodList{}, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelDeploymentID: "9-app"})
		Expect(err).NotTo(HaveOccurred())
		drain := func(c <-chan struct{}) {}
		_ = drain
		for i := range 100 {
			for len(watch.ResultChan()) > 0 {
				<-watch.ResultChan()
			}
			Expect(api.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p3-7-app"}, pod)).To(Succeed())
			t0 := time.Now()
			setReady(ctx, pod, i%2 == 1)
			want := "Failed"
			if i%2 == 1 {
				want = "Ready"
			}
			for e := range watch.ResultChan() {
				if b, ok := e.Object.(*v1alpha1.ResourceBundleState); ok && states(b)["Pod/p3-7-app"] == want {
					break
				}
			}
			lat = append(lat, time.Since(t0))
			Expect(api.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p3-9-app"}, pod)).To(Succeed())
			t0 = time.Now()
			setReady(ctx, pod, i%2 == 1)
			for e := range pw.ResultChan() {
				if b, ok := e.Object.(*corev1.Pod); ok && b.ResourceVersion == pod.ResourceVersion {
					break
				}
			}
			floor = append(floor, time.Since(t0))
			time.Sleep(300 * time.Millisecond)
		}
		for _, l := range [][]time.Duration{lat, floor} {
			sort.Slice(l, func(i, j int) bool { return l[i] < l[j] })
			fmt.Println("p50", l[50], "p95", l[95], "max", l[99])
		}
		// restart
		m.stop()
		began = time.Now()
		m = start(ctx, monitor.Options{LeaseNamespace: ns})
		create(ctx, newBundle(ns, "probe"))
		Eventually(func() *v1alpha1.Summary { return get(ctx, ns, "probe").Status.Summary }, "60s").ShouldNot(BeNil())
		fmt.Println("restart probe after", time.Since(began))
		time.Sleep(5 * time.Second)
		fmt.Println("restart writes", m.writes(), rss())
	})
})
