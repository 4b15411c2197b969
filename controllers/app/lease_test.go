package app

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestLockIsHeldUntilTheLeaseExpires simulates a machine that sleeps between two renewals.
func TestLockIsHeldUntilTheLeaseExpires(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	store := &memoryLease{}
	lease := &trackedLock{Interface: memoryLock{store, "this"}, now: func() time.Time { return now }}
	expect := func(when string, want bool) {
		t.Helper()
		if lease.held() != want {
			t.Errorf("held %t %s", lease.held(), when)
		}
	}
	renew := func(holder string) {
		t.Helper()
		if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}); err != nil {
			t.Fatal(err)
		}
	}
	store.heldBy("other")
	expect("while another replica leads", false)
	renew("this")
	expect("when it is taken", true)
	now = now.Add(leaseDuration - time.Second)
	expect("before it is renewed", true)
	renew("this")
	now = now.Add(leaseDuration)
	expect("after a sleep", false)
	renew("this")
	expect("when it is renewed, as no other replica has taken it", true)
	renew("")
	expect("when it is released", false)
}
