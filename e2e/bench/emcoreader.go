package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// emcoReader reads a context as EMCO's status query does (22.09, status=ready): by one request for each handle that is looked
// up, each value, and each time that the context is made sure of. The answers are decoded no further than is needed to go on.
type emcoReader struct {
	client *clientv3.Client
	// requests counts requests, and bytes what their answers hold.
	requests int
	bytes    int64
	// resources and bundles count what was found: resources that have been applied, and places with a bundle.
	resources, bundles int
	// failure is the first request that failed, after which nothing is asked any more.
	failure error
}

// emcoCost is what EMCO's way needs for a whole document.
type emcoCost struct {
	requests, bytes float64
	took            time.Duration
	// share is how much of the document was read, from 0 to 1; the rest is taken to need as much for each place.
	share float64
}

// read reads a group's context until everything has been read, or time is over; it does not stop within a place.
func (r *emcoReader) read(ctx context.Context, g *group, limit time.Duration) (emcoCost, error) {
	h := appcontext.ContextHandle(g.id)
	begin := time.Now()
	r.open(ctx, h)
	head, opened := *r, time.Now()
	places := r.places(ctx, h, g, begin.Add(limit))
	if r.failure != nil {
		return emcoCost{}, r.failure
	}
	if want := places * groupResources; r.resources != want || r.bundles != places {
		return emcoCost{}, fmt.Errorf("EMCO's way has found %d resources that were applied and %d bundles at %d places, not %d and %d", r.resources, r.bundles, places, want, places)
	}
	times := float64(g.places()) / float64(places)
	return emcoCost{
		requests: float64(head.requests) + times*float64(r.requests-head.requests),
		bytes:    float64(head.bytes) + times*float64(r.bytes-head.bytes),
		took:     opened.Sub(begin) + time.Duration(times*float64(time.Since(opened))),
		share:    1 / times,
	}, nil
}

// places reads apps and clusters until a time, but at least one, and returns how many it has read.
func (r *emcoReader) places(ctx context.Context, h appcontext.Handle, g *group, until time.Time) int {
	n := 0
	for _, name := range g.apps {
		clusters := h.Level("app/" + name).Level("cluster")
		r.get(ctx, h)
		r.list(ctx, clusters)
		for _, cluster := range g.clusters {
			r.place(ctx, h, clusters.Level(cluster))
			if n++; time.Now().After(until) {
				return n
			}
		}
	}
	return n
}

// open takes up the context and lists its apps.
func (r *emcoReader) open(ctx context.Context, h appcontext.Handle) {
	r.get(ctx, h)
	r.get(ctx, h)
	r.value(ctx, h.Level("status"))
	r.get(ctx, h) // Once more for the context that has the states.
	r.get(ctx, h.Level("meta"))
	r.get(ctx, h)
	r.list(ctx, h)
}

// place reads an app in a cluster.
func (r *emcoReader) place(ctx context.Context, h, cluster appcontext.Handle) {
	// Whether the cluster can be reached, in the context that handled it last.
	r.handle(ctx, h, cluster)
	r.value(ctx, cluster.Level("reference"))
	r.get(ctx, h)
	r.handle(ctx, h, cluster)
	r.value(ctx, cluster.Level("readystatus"))
	// The cluster's resources.
	r.handle(ctx, h, cluster)
	for _, key := range r.list(ctx, cluster) {
		rest := strings.TrimPrefix(key, string(cluster.Level("resource")))
		if name, last := strings.CutSuffix(rest, "/"); last && rest != key && !strings.Contains(name, "/") {
			r.resource(ctx, h, appcontext.Handle(key))
		}
	}
	// The bundle.
	r.get(ctx, h)
	if len(r.value(ctx, cluster.Level("status"))) > 0 {
		r.bundles++
	}
}

// resource reads a resource: what rsync did with it, and itself from the context that handled it last.
func (r *emcoReader) resource(ctx context.Context, h, resource appcontext.Handle) {
	r.get(ctx, h)
	if strings.Contains(string(r.value(ctx, resource.Level("status"))), string(appcontext.ResourceApplied)) {
		r.resources++
	}
	r.value(ctx, resource.Level("reference"))
	r.get(ctx, h)
	r.handle(ctx, h, resource)
	r.get(ctx, resource)
	for range 3 { // Whether the contexts are the same.
		r.get(ctx, h)
	}
}

// handle looks up a handle.
func (r *emcoReader) handle(ctx context.Context, h, handle appcontext.Handle) {
	r.get(ctx, h)
	r.list(ctx, handle)
}

// value looks up the handle of a level and gets its value.
func (r *emcoReader) value(ctx context.Context, level appcontext.Handle) []byte {
	r.list(ctx, level)
	return r.get(ctx, level)
}

// get gets one value.
func (r *emcoReader) get(ctx context.Context, h appcontext.Handle) []byte {
	response := r.ask(ctx, string(h))
	if response == nil || len(response.Kvs) == 0 {
		return nil
	}
	return response.Kvs[0].Value
}

// list gets everything below a handle, of which EMCO uses the keys.
func (r *emcoReader) list(ctx context.Context, h appcontext.Handle) []string {
	response := r.ask(ctx, string(h), clientv3.WithPrefix())
	if response == nil {
		return nil
	}
	keys := make([]string, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

func (r *emcoReader) ask(ctx context.Context, key string, options ...clientv3.OpOption) *clientv3.GetResponse {
	if r.failure != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	response, err := r.client.Get(ctx, key, options...)
	if err != nil {
		r.failure = fmt.Errorf("cannot read %q as EMCO does: %w", key, err)
		return nil
	}
	r.requests++
	for _, kv := range response.Kvs {
		r.bytes += int64(len(kv.Key) + len(kv.Value))
	}
	return response
}
