package inventory

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// many are scopes of ten resources each in many namespaces, each of which goes to a tenant of its own.
func many(tenants, clusters int) (mapping.Options, judgedScopes) {
	o, all := options(), judgedScopes{}
	o.Regions = nil
	for t := range tenants {
		namespace := fmt.Sprintf("ns-%02d", t)
		o.Regions = append(o.Regions, configv1alpha1.Region{Cluster: "*", Namespace: namespace, CloudOwner: "o", CloudRegionID: "r", TenantID: namespace})
		for s := range 10_000 / tenants {
			n := name(namespace, fmt.Sprintf("scope-%04d", s))
			all[n] = judged()
			for r := range 10 {
				m := member(namespace, fmt.Sprintf("web-%04d-%d", s, r), healthscope.Ready)
				m.Cluster = fmt.Sprintf("edge-%02d", s%clusters)
				all[n].Members = append(all[n].Members, placed(m)...)
			}
		}
	}
	return o, all
}

type memory map[aai.Key]*aai.Document

func (m memory) pass(c sync.Change, state sync.State) sync.Report {
	r := sync.Report{Changed: map[aai.Key]sync.Object{}}
	for key, w := range c.Wishes {
		if !reflect.DeepEqual(m[key], w.Document) {
			m[key] = w.Document
			r.Changed[key] = sync.Object{State: state}
		}
	}
	return r
}

// cpu is the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

type bench struct {
	o      mapping.Options
	inputs *inputs
	status *Status
	scopes judgedScopes
	known  memory
}

func start(o mapping.Options, scopes judgedScopes) *bench {
	b := &bench{o: o, scopes: scopes, known: memory{}}
	b.inputs = newInputs(o, configv1alpha1.SelectScoped, scopes, nil)
	b.status = newStatus(o, b.inputs)
	for n := range scopes {
		b.inputs.scopeExists(n, noon, 1)
		b.inputs.scopeJudged(n)
		b.status.Report(n, scopes[n].Members, nil)
	}
	return b
}

func (b *bench) pass(tenant aai.Tenant, state sync.State) int {
	n := b.inputs.take(tenant, oneCluster{})
	r := b.known.pass(n.Change, state)
	b.status.put(tenant, n, r, nil, time.Now())
	return len(r.Changed)
}

func BenchmarkStart(b *testing.B) {
	for _, tenants := range []int{50, 1} {
		o, scopes := many(tenants, 50/tenants)
		b.Run(fmt.Sprintf("%d tenants", tenants), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				before := heap()
				used := cpu()
				b.StartTimer()
				s := start(o, scopes)
				for _, tenant := range o.Tenants() {
					s.pass(tenant, sync.Synced)
				}
				b.StopTimer()
				b.ReportMetric(float64((cpu()-used).Microseconds())/1000, "cpu-ms/op")
				b.ReportMetric(float64(heap()-before)/100_000, "held-B/resource")
				runtime.KeepAlive(s)
				b.StartTimer()
			}
		})
	}
}

func BenchmarkChange(b *testing.B) {
	for _, tenants := range []int{50, 1} {
		o, scopes := many(tenants, 50/tenants)
		s := start(o, scopes)
		for _, tenant := range o.Tenants() {
			s.pass(tenant, sync.Synced)
		}
		changing := types.NamespacedName{Namespace: "ns-00", Name: "scope-0007"}
		b.Run(fmt.Sprintf("%d tenants", tenants), func(b *testing.B) {
			b.ReportAllocs()
			used := cpu()
			defer func() { b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-us/op") }()
			for i := 0; b.Loop(); i++ {
				members := slices.Clone(scopes[changing].Members)
				m := *members[0].Member
				m.State = []healthscope.State{healthscope.Failed, healthscope.Ready}[i%2]
				members[0].Member = &m
				scopes[changing] = judged(members...)
				s.inputs.scopeJudged(changing)
				if n := s.pass(o.Tenants()[0], []sync.State{sync.Pending, sync.Synced}[i%2]); n != 1 {
					b.Fatal(n)
				}
				s.status.Report(changing, members, nil)
			}
		})
	}
}
