package fleet

import (
	"fmt"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// errOverBudget is why nothing is read any more of a cluster that takes more than it may.
var errOverBudget = errors.New("the cluster takes more of the hub than its budget allows")

// Budget bounds what clusters may take of the hub's memory. Zero means no bound. The hub's own cluster counts in the
// sum, and is never cut off: without it the hub can tell nobody anything.
type Budget struct {
	// Bundles, Resources and Bytes bound what is held of one cluster. Objects that scopes refer to count as resources.
	Bundles, Resources, Bytes int64
	// Total bounds the bytes that are held of all clusters. Past it, the cluster of which most is held is cut off.
	Total int64
}

// cost is what something takes of a budget.
type cost struct{ bundles, resources, bytes int64 }

func (c cost) plus(o cost) cost {
	return cost{c.bundles + o.bundles, c.resources + o.resources, c.bytes + o.bytes}
}

func (c cost) minus(o cost) cost {
	return cost{c.bundles - o.bundles, c.resources - o.resources, c.bytes - o.bytes}
}

// purse has the accounts of all clusters, and one lock for all of them: the sum is bounded too.
type purse struct {
	budget Budget

	mu       sync.Mutex
	accounts map[*account]struct{}
}

// account counts what is held of one cluster.
type account struct {
	purse   *purse
	cluster string
	// own is true for the hub's own cluster, and wake is called when something is to be done. It does not block.
	own  bool
	wake func()

	// What follows is guarded by the purse's lock.
	held cost
	// left is what is still shown of a cluster that was cut off, as it was known last, and dropping is true once that is to go too.
	left     int64
	dropping bool
	// generation is which attempt to read the cluster counts, and excess why it has ended; empty while it has not.
	generation int
	excess     string
}

// open returns the account of a cluster that comes.
func (p *purse) open(cluster string, own bool, wake func()) *account {
	a := &account{purse: p, cluster: cluster, own: own, wake: wake}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts == nil {
		p.accounts = map[*account]struct{}{}
	}
	p.accounts[a] = struct{}{}
	return a
}

// close forgets a cluster that has gone.
func (a *account) close() {
	a.purse.mu.Lock()
	defer a.purse.mu.Unlock()
	delete(a.purse.accounts, a)
}

// allow returns what an attempt to read the cluster counts with.
func (a *account) allow() *allowance {
	a.purse.mu.Lock()
	defer a.purse.mu.Unlock()
	return &allowance{account: a, generation: a.generation}
}

// reopen lets a cluster be read again that has been cut off.
func (a *account) reopen() {
	a.purse.mu.Lock()
	defer a.purse.mu.Unlock()
	a.excess = ""
}

// exceeded says why the cluster has been cut off, and whether what is still shown of it is to go; it is empty while it has not been.
func (a *account) exceeded() (excess string, drop bool) {
	a.purse.mu.Lock()
	defer a.purse.mu.Unlock()
	return a.excess, a.dropping
}

// replaced notes that nothing is shown any more of what was known before the cluster was cut off.
func (a *account) replaced() {
	a.purse.mu.Lock()
	defer a.purse.mu.Unlock()
	a.left, a.dropping = 0, false
}

// all returns the bytes that are held of the cluster in any way.
func (a *account) all() int64 { return a.held.bytes + a.left }

// cut ends the attempt to read the cluster. The caller has the lock.
func (a *account) cut(excess string) {
	a.excess, a.generation = excess, a.generation+1
	a.left, a.held = max(a.left, a.held.bytes/2), cost{} // What is shown is kept; what it was made from is not.
	a.wake()
}

// enforce cuts off who takes too much, now that the account has grown. The caller has the lock.
func (p *purse) enforce(a *account) {
	if excess := p.budget.excess(a.held); excess != "" && !a.own {
		a.cut(excess)
	}
	if p.budget.Total == 0 {
		return
	}
	for sum := p.sum(); sum > p.budget.Total; {
		most := p.most()
		if most == nil {
			return
		}
		before := most.all()
		if most.excess != "" {
			most.left, most.dropping = 0, true
			most.wake()
		} else {
			most.cut(fmt.Sprintf("the hub holds %s of all clusters, and may hold %s; of this one it holds most, %s", mebibytes(sum), mebibytes(p.budget.Total), mebibytes(most.held.bytes)))
		}
		sum += most.all() - before
	}
}

func (p *purse) sum() (bytes int64) {
	for a := range p.accounts {
		bytes += a.all()
	}
	return bytes
}

// most returns the account that is to give something back: first of what is left of clusters that were cut off, and else the greatest.
func (p *purse) most() *account {
	var left, most *account
	for a := range p.accounts {
		switch {
		case a.excess != "" && a.left > 0 && (left == nil || a.left > left.left):
			left = a
		case a.excess == "" && !a.own && (most == nil || a.all() > most.all() || a.all() == most.all() && a.cluster < most.cluster):
			most = a
		}
	}
	if left != nil {
		return left
	}
	return most
}

// excess says for people what is more than one cluster may take; it is empty when nothing is.
func (b Budget) excess(held cost) string {
	var over []string
	for _, c := range b.parts(held) {
		if c.most > 0 && c.held > c.most {
			over = append(over, c.text(c.held)+", and may hold "+c.text(c.most))
		}
	}
	if len(over) == 0 {
		return ""
	}
	return "the hub holds of it " + strings.Join(over, "; ")
}

// part is one of the bounds of a budget, with what is held.
type part struct {
	name       string
	held, most int64
	text       func(int64) string
}

func (b Budget) parts(held cost) []part {
	count := func(what string) func(int64) string {
		return func(n int64) string { return fmt.Sprintf("%d %s", n, what) }
	}
	return []part{
		{"bundles", held.bundles, b.Bundles, count("bundles")},
		{"resources", held.resources, b.Resources, count("resources")},
		{"memory", held.bytes, b.Bytes, mebibytes},
	}
}

// mebibytes returns a number of bytes for people.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// usage is how much of each of its bounds a cluster takes, from 0 to 1, by the name of the bound.
type usage struct {
	cluster string
	shares  map[string]float64
}

// usage returns how much clusters take of their budgets.
func (p *purse) usage() []usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]usage, 0, len(p.accounts))
	for a := range p.accounts {
		u := usage{cluster: a.cluster, shares: map[string]float64{}}
		for _, c := range p.budget.parts(a.held) {
			if c.most > 0 && !a.own {
				u.shares[c.name] = float64(c.held) / float64(c.most)
			}
		}
		all = append(all, u)
	}
	return all
}

// allowance is what one attempt to read a cluster counts with. A nil one counts nothing.
type allowance struct {
	account    *account
	generation int
}

// over returns an error once nothing more is to be read.
func (s *allowance) over() error {
	if s == nil {
		return nil
	}
	s.account.purse.mu.Lock()
	defer s.account.purse.mu.Unlock()
	return s.ended()
}

// ended is over for who has the lock.
func (s *allowance) ended() error {
	if s.generation != s.account.generation {
		return errOverBudget
	}
	return nil
}

// exceed ends the attempt for a reason of its own.
func (s *allowance) exceed(why string) {
	if s == nil {
		return
	}
	s.account.purse.mu.Lock()
	defer s.account.purse.mu.Unlock()
	if s.ended() == nil && !s.account.own {
		s.account.cut(why)
	}
}
