package level

func pars() map[string]Par { return nil }
