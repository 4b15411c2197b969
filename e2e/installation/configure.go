package installation

// Configure replaces what Options.Configuration has added to the configuration
// file. Programs that run read the file again by themselves, as far as they do that without a restart.
func (i *Installation) Configure(configuration string) error {
	i.options.Configuration = configuration
	return i.writeConfiguration()
}
