package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestFewMayWaitForWholeObjects asserts that requests that wait for whole objects do not block other requests: when many wait, the
// next one fails at once, and all other requests get a response.
func TestFewMayWaitForWholeObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contexts, clusters := fixtures(t)
		over := make(chan struct{})
		held := observationOf("west+bonn", healthscope.Ready, true)
		held.Read = func(context.Context) (*status.Bundle, error) {
			<-over
			return nil, errors.New("no answer")
		}
		clusters.instances["held-fox"] = []Observation{held}
		h := NewHandler(Options{Scopes: manyScopes(), Documents: NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters})})
		targets := []string{"/v1/instance/held-fox/status", autumnURL + "?output=detail"}
		var asking sync.WaitGroup
		defer asking.Wait()
		defer close(over)
		for i := range maxDetail + maxWaiting {
			target := targets[0]
			if i >= maxDetail { // Requests for both documents wait for the same tokens.
				target = targets[i%2]
			}
			asking.Go(func() {
				if got := get(t, h, target, nil); got.Code != http.StatusOK {
					t.Errorf("%s: status %d, %s", target, got.Code, got.Body)
				}
			})
			synctest.Wait()
		}
		for _, target := range targets {
			got := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+target, http.NoBody)
			asking.Go(func() { h.ServeHTTP(got, r) })
			synctest.Wait() // The response must not depend on time, which does not advance here.
			checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "are being made already")
		}
		for _, target := range []string{"/scopes", autumnURL} {
			if got := get(t, h, target, nil); got.Code != http.StatusOK {
				t.Errorf("%s: status %d, %s", target, got.Code, got.Body)
			}
		}
	})
}
