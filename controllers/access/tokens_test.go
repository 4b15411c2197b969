package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/healthscope/healthscope/healthscope/api"
)

// reviews counts TokenReviews. It accepts tokens that begin with "good"; those that begin with "slow" wait for release.
type reviews struct {
	n       atomic.Int32
	entered chan struct{}
	release chan struct{}
}

func (v *reviews) review(ctx context.Context, token string) (api.Caller, bool, error) {
	v.n.Add(1)
	if len(token) >= 4 && token[:4] == "slow" {
		v.entered <- struct{}{}
		select {
		case <-v.release:
		case <-ctx.Done():
			return api.Caller{}, false, ctx.Err()
		}
	}
	return api.Caller{Name: token}, len(token) >= 4 && token[:4] == "good", nil
}

func newReviews() *reviews {
	return &reviews{entered: make(chan struct{}, 1000), release: make(chan struct{})}
}

func TestRejectedTokensOfASourceAreLimited(t *testing.T) {
	v, now := newReviews(), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	k := newAuthenticator(v.review, now)
	var rejected int
	for n := range 5000 {
		_, known, err := k.authenticate(t.Context(), "a", fmt.Sprintf("wrong-%d", n))
		if known || err != nil && !errors.Is(err, api.ErrTooMany) {
			t.Fatal(known, err)
		}
		if err != nil {
			rejected++
		}
	}
	if got := v.n.Load(); got > rejectedBurst || rejected != 5000-rejectedBurst {
		t.Errorf("5000 wrong tokens cost %d reviews; %d were refused", got, rejected)
	}
}

func TestLimitOfASourceSparesAcceptedTokensAndOtherSources(t *testing.T) {
	v, now := newReviews(), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	k := newAuthenticator(v.review, now)
	if _, known, err := k.authenticate(t.Context(), "a", "good-old"); err != nil || !known {
		t.Fatal(known, err)
	}
	now.SetTime(now.Now().Add(allowedTTL + time.Millisecond))
	for n := range 5000 { // The source exhausts its limit.
		_, _, _ = k.authenticate(t.Context(), "a", fmt.Sprintf("other-%d", n))
	}
	if _, known, err := k.authenticate(t.Context(), "a", "good-old"); err != nil || !known {
		t.Errorf("a token that was good is refused with those of others at its address: %v, %v", known, err)
	}
	if _, known, err := k.authenticate(t.Context(), "b", "good-new"); err != nil || !known {
		t.Errorf("another address is refused: %v, %v", known, err)
	}
	now.SetTime(now.Now().Add(time.Minute))
	if _, known, err := k.authenticate(t.Context(), "a", "good-new-too"); err != nil || !known {
		t.Errorf("a source is refused for ever: %v, %v", known, err)
	}
}

// TestRejectedTokensEvictNoAcceptedToken checks that a flood of wrong tokens from many sources costs a known caller at most a
// review, even if its own source has exhausted its limit.
func TestRejectedTokensEvictNoAcceptedToken(t *testing.T) {
	v, now := newReviews(), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	k := newAuthenticator(v.review, now)
	if _, known, err := k.authenticate(t.Context(), "a", "good"); err != nil || !known {
		t.Fatal(known, err)
	}
	for n := range maxCachedTokens + rejectedBurst {
		_, _, _ = k.authenticate(t.Context(), fmt.Sprint("b", n/rejectedBurst), fmt.Sprintf("wrong-%d", n))
	}
	for n := range rejectedBurst {
		_, _, _ = k.authenticate(t.Context(), "a", fmt.Sprintf("other-%d", n))
	}
	if _, known, err := k.authenticate(t.Context(), "a", "good"); err != nil || !known {
		t.Errorf("a token that was good is refused after many wrong ones: %v, %v", known, err)
	}
}

func TestPendingReviewsDoNotBlockKnownCallers(t *testing.T) {
	v := newReviews()
	k := newAuthenticator(v.review, clock.RealClock{})
	if _, known, err := k.authenticate(t.Context(), "a", "good"); err != nil || !known {
		t.Fatal(known, err)
	}
	ended := make(chan error)
	for n := range maxReviews {
		go func() {
			_, _, err := k.authenticate(t.Context(), fmt.Sprint(n), fmt.Sprintf("slow-%d", n))
			ended <- err
		}()
		<-v.entered
	}
	for range 10 {
		if _, known, err := k.authenticate(t.Context(), "a", "good"); err != nil || !known {
			t.Errorf("a known caller waits for others: %v, %v", known, err)
		}
	}
	if _, _, err := k.authenticate(t.Context(), "z", "slow-more"); !errors.Is(err, api.ErrBusy) {
		t.Errorf("there is no bound of reviews: %v", err)
	}
	close(v.release)
	for range maxReviews {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestDisconnectedCallerIsNotLogged(t *testing.T) {
	v := newReviews()
	k := newAuthenticator(v.review, clock.RealClock{})
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Authorization", "Bearer slow")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		withAuthorization(&Guard{tokens: k}, logger, http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-v.entered
	leave()
	<-answered
	if len(lines) > 0 {
		t.Errorf("logged: %q", lines)
	}
	close(v.release)
}

func TestSourceOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "@": "@",
	} {
		if got := sourceOf(&http.Request{RemoteAddr: address}); got != want {
			t.Errorf("source of %s is %s, want %s", address, got, want)
		}
	}
}
