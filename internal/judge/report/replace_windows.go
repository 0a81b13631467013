package report

// replace returns errNoReplacing: Windows has no atomic rename over an existing file, see the
// documentation of github.com/google/renameio.
func replace(string, []byte) error { return errNoReplacing }
