package fleet

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// newLeaseConnection returns a connection that has sent nothing yet.
func newLeaseConnection(t *testing.T) *connection {
	t.Helper()
	c := silent(clock.RealClock{})
	if err := c.prepare("edge", nil, Options{Liveness: &Liveness{MonitorNamespace: "monitors"}}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLeaseIsReportedToLiveness(t *testing.T) {
	t.Parallel()
	c := newLeaseConnection(t)
	monitor := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: monitorLease, UID: "1"}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(15))}}
	renewed := monitor.DeepCopy()
	renewed.Spec.RenewTime = &metav1.MicroTime{Time: noon}
	again := renewed.DeepCopy()
	again.Spec.RenewTime = &metav1.MicroTime{Time: noon.Add(time.Microsecond)}
	before := lease{}
	for _, step := range []struct {
		name             string
		do               func() error
		present, renewal bool
	}{
		{"read", func() error { return c.lease.Store.Replace([]any{monitor}, "1") }, true, true},
		{"renewed", func() error { return c.lease.Store.Update(renewed) }, true, true},
		{"renewed again", func() error { return c.lease.Store.Update(again) }, true, true},
		{"changed without a renewal", func() error { return c.lease.Store.Update(again.DeepCopy()) }, true, false},
		{"deleted", func() error { return c.lease.Store.Delete(again) }, false, false},
		{"added", func() error { return c.lease.Store.Add(monitor) }, true, true},
		{"read, and not found", func() error { return c.lease.Store.Replace(nil, "2") }, false, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		now := c.liveness.lease
		renewal := now.present && now.fingerprint != before.fingerprint
		if now.present != step.present || renewal != step.renewal || now.present && now.duration != 15*time.Second {
			t.Errorf("%s: %+v", step.name, now)
		}
		before = now
	}
}

// TestLeasesAreNotKept: a member's API server is not trusted, and may send other Leases than it was asked for without end.
func TestLeasesAreNotKept(t *testing.T) {
	const leases, size, most = 500, 64 << 10, 8 << 20
	c := newLeaseConnection(t)
	before := heap()
	for i := range leases {
		other := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", i), Annotations: map[string]string{"large": strings.Repeat("x", size)}}}
		if err := c.lease.Store.Add(other); err != nil {
			t.Fatal(err)
		}
	}
	if held := int64(heap()) - int64(before); held > most {
		t.Errorf("%d MiB of %d Leases are kept", held>>20, leases)
	}
	runtime.KeepAlive(c)
}

// TestMemberIsWokenByTheFirstAnswer: an API server may send thousands of events in a second. The member is assessed at once only when
// the API server answers for the first time, and after an outage.
func TestMemberIsWokenByTheFirstAnswer(t *testing.T) {
	t.Parallel()
	at := clocktesting.NewFakeClock(noon)
	c, woken := silent(at), 0
	c.wake = func() { woken++ }
	for want := 1; want <= 2; want++ {
		for range 1000 {
			c.answered()
		}
		if woken != want || !c.liveness.lastContact.Equal(at.Now()) {
			t.Errorf("the member has been woken %d times, want %d; last contact at %s", woken, want, c.liveness.lastContact)
		}
		at.SetTime(at.Now().Add(time.Minute))
	}
}
