package appcontext

import (
	"cmp"
	"context"
)

// AddApp adds an app to a composite app and returns its handle. It fails with ErrNotFound when the composite app is not
// there, and with ErrExists when the app is.
func (ac *AppContext) AddApp(ctx context.Context, compositeApp Handle, name string) (Handle, error) {
	if err := cmp.Or(checkHandle(ac.id, compositeApp, kindContext), checkNode("level value", name)); err != nil {
		return "", err
	}
	return ac.add(ctx, opAddLevel, compositeApp, partApp+"/"+name, name)
}

// AddCluster adds a cluster, <provider>+<cluster>, to an app and returns its handle, with errors as AddApp. A cluster with
// network intents is entered in its index at the same time.
func (ac *AppContext) AddCluster(ctx context.Context, app Handle, name string) (Handle, error) {
	if err := cmp.Or(checkHandle(ac.id, app, kindApp), checkName("level value", name)); err != nil {
		return "", err
	}
	_, parts, _ := app.split()
	var subjects []DeploymentRef
	if s, ok := subjectOfCluster(parts[1], name); ok {
		subjects = append(subjects, s)
	}
	return ac.add(ctx, opAddLevel, app, partCluster+"/"+name, name, subjects...)
}

// AddClusterMetaGrp makes a cluster a candidate of the anyOf group with a number, with errors as AddApp.
func (ac *AppContext) AddClusterMetaGrp(ctx context.Context, cluster Handle, group string) error {
	if err := cmp.Or(checkHandle(ac.id, cluster, kindCluster), checkNotEmpty("level value", group)); err != nil {
		return err
	}
	_, err := ac.add(ctx, opAddLevel, cluster, partGroup, group)
	return err
}

// AddResource adds a resource to a cluster and returns its handle, with errors as AddApp. EMCO names resources
// <object>+<Kind>, and the value is the object in YAML or JSON.
func (ac *AppContext) AddResource(ctx context.Context, cluster Handle, name string, value any) (Handle, error) {
	if err := cmp.Or(checkHandle(ac.id, cluster, kindCluster), checkNode("resource name", name), checkNotEmpty("resource value", value)); err != nil {
		return "", err
	}
	return ac.add(ctx, "cannot add resource", cluster, partResource+"/"+name, value)
}

// AddLevelValue stores a value at a level below a handle, such as "status", and returns its handle, with errors as AddApp.
// A level may have several parts, such as "instruction/dependency".
func (ac *AppContext) AddLevelValue(ctx context.Context, h Handle, level string, value any) (Handle, error) {
	if err := cmp.Or(checkHandle(ac.id, h), checkLevel(level), checkNotEmpty("level value", value)); err != nil {
		return "", err
	}
	return ac.add(ctx, opAddLevel, h, level, value)
}

// add stores a value at a level that is not there yet, below a parent that is, and enters the context in the indices of subjects.
func (ac *AppContext) add(ctx context.Context, operation string, parent Handle, level string, value any, subjects ...DeploymentRef) (Handle, error) {
	h := parent.Level(level)
	t := &transaction{}
	t.require(string(parent))
	t.requireAbsent(string(h))
	t.put(string(h), value)
	for _, s := range subjects {
		t.index(s, ac.id)
	}
	if err := ac.store.commit(ctx, t); err != nil {
		return "", wrap(operation, err)
	}
	return h, nil
}

// AddInstruction stores an instruction and returns its handle. The level is "app" below a composite app, "resource" below
// a cluster, "subresource" below a resource; the type is "order" or "dependency". The value is JSON in a string, for
// instance {"resorder":["sink+Deployment"]}. An instruction that is there is replaced: this is how EMCO's action
// controllers extend an order. A value that is no string is stored as a string that holds its JSON: EMCO reads nothing else.
func (ac *AppContext) AddInstruction(ctx context.Context, h Handle, level, instruction string, value any) (Handle, error) {
	parents := map[string]kind{partApp: kindContext, partResource: kindCluster, partSubresource: kindResource}
	parent, ok := parents[level]
	if !ok {
		return "", &invalidError{"instruction level", level, `must be "app", "resource" or "subresource"`}
	}
	if err := cmp.Or(checkInstruction(instruction), checkHandle(ac.id, h, parent), checkNotEmpty("instruction value", value)); err != nil {
		return "", err
	}
	text, err := instructionText(value)
	if err != nil {
		return "", wrap(opAddInstruction, err)
	}
	key := h.Level(level).Level(partInstruction).Level(instruction)
	t := &transaction{}
	t.require(string(h))
	t.put(string(key), text)
	if err := ac.store.commit(ctx, t); err != nil {
		return "", wrap(opAddInstruction, err)
	}
	return key, nil
}

// instructionText returns the text of an instruction: a string as it is, and the JSON of another value.
func instructionText(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	data, err := encode(value)
	return string(data), err
}

func checkInstruction(instruction string) error {
	if instruction != partOrder && instruction != partDependency {
		return &invalidError{"instruction type", instruction, `must be "order" or "dependency"`}
	}
	return nil
}

// UpdateValue replaces a value. It fails with ErrNotFound when there is none: what was deleted meanwhile does not come
// back in pieces.
func (ac *AppContext) UpdateValue(ctx context.Context, h Handle, value any) error {
	if err := checkHandle(ac.id, h); err != nil {
		return err
	}
	t := &transaction{}
	t.require(string(h))
	t.put(string(h), value)
	return wrap(opUpdate, ac.store.commit(ctx, t))
}

// UpdateStatusValue replaces the value of a status, as UpdateValue.
func (ac *AppContext) UpdateStatusValue(ctx context.Context, h Handle, value any) error {
	return ac.UpdateValue(ctx, h, value)
}

// UpdateResourceValue replaces the value of a resource, as UpdateValue.
func (ac *AppContext) UpdateResourceValue(ctx context.Context, resource Handle, value any) error {
	if err := checkHandle(ac.id, resource, kindResource); err != nil {
		return err
	}
	return ac.UpdateValue(ctx, resource, value)
}

// UpdateInstructionValue replaces the value of an instruction, as UpdateValue. The value is what AddInstruction takes.
func (ac *AppContext) UpdateInstructionValue(ctx context.Context, instruction Handle, value any) error {
	text, err := instructionText(value)
	if err != nil {
		return wrap(opUpdate, err)
	}
	return ac.UpdateValue(ctx, instruction, text)
}
