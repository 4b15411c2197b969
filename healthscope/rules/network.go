package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeService is the rule for Services: Ready, except for a Service of type LoadBalancer without an address. An external IP, which the user
// provides, counts as an address.
func judgeService(o *object) {
	o.State = healthscope.Ready
	if o.text(o.spec, "spec.type") != "LoadBalancer" {
		return
	}
	if o.addresses()+len(o.list(o.spec, "spec.externalIPs")) == 0 {
		o.set(healthscope.Pending, healthscope.ReasonLoadBalancerPending, "the load balancer has no address yet")
	}
}

// judgeIngress is the rule for Ingresses. An Ingress without an address only gets a warning: many ingress controllers never write an address.
func judgeIngress(o *object) {
	o.State = healthscope.Ready
	if o.addresses() == 0 {
		o.warn(healthscope.ReasonNoAddress, "the ingress has no address")
	}
}

// addresses returns the number of addresses of a load balancer.
func (o *object) addresses() int {
	return len(o.children(o.child(o.status, "status.loadBalancer"), "status.loadBalancer.ingress"))
}

// judgeGateway is the rule for Gateways: Ready when Programmed, Failed when not
// Accepted. Before v1beta1 of the Gateway API, Gateways have the condition Ready instead of Programmed.
func judgeGateway(o *object) {
	o.requireConditions()
	programmed := findCondition(o.conditions, "Programmed", "Ready")
	switch {
	case o.isRefused(o.conditions):
	case !programmed.exists():
		o.notObserved()
	case !o.judgeByCondition(programmed):
	case len(o.children(o.status, "status.addresses")) == 0:
		o.warn(healthscope.ReasonNoAddress, "the gateway has no address")
	}
}

// judgeGatewayClass is the rule for GatewayClasses: Ready when Accepted, and Failed when not.
func judgeGatewayClass(o *object) {
	accepted := o.condition("Accepted")
	switch {
	case o.isRefused(o.conditions):
	case !accepted.exists():
		o.notObserved()
	default:
		o.judgeByCondition(accepted)
	}
}

// judgeRoute is the rule for the routes of the Gateway API, which have conditions for each parent: Failed when a parent does not accept the
// route, Ready when all parents accept it and resolve its references. The first parent that does not decides.
func judgeRoute(o *object) {
	parents := o.children(o.status, "status.parents")
	if len(parents) == 0 {
		o.notObserved()
		return
	}
	o.State = healthscope.Ready
	for _, parent := range parents {
		list, _ := parent["conditions"].([]any)
		conditions := conditionsOf(list)
		accepted, resolved := findCondition(conditions, "Accepted"), findCondition(conditions, "ResolvedRefs")
		switch {
		case o.isRefused(conditions):
			return
		case o.State != healthscope.Ready:
		case !accepted.exists():
			o.notObserved()
		case o.judgeByCondition(accepted) && resolved.exists():
			o.judgeByCondition(resolved)
		}
	}
}

// isRefused sets the result of an object that its controller does not accept, according to its conditions or those of a parent, and reports
// whether it is one.
func (o *object) isRefused(conditions []condition) bool {
	accepted := findCondition(conditions, "Accepted")
	if !accepted.is("False") || o.outdated(accepted) {
		return false
	}
	o.override(healthscope.Failed, healthscope.ReasonNotAccepted, accepted.detail())
	return true
}
