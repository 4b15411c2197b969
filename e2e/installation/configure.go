package installation

// Configure replaces what Options.Configuration has added to the configuration
// files. Programs that run read their file again by themselves, as far as they do that without a restart.
func (i *Installation) Configure(configuration string) error {
	i.options.Configuration = configuration
	return i.writeConfiguration()
}
