package app

import (
	"fmt"
	"regexp"
)

func (a *App) random(f *file) error {
	for _, text := range f.Random {
		pattern, err := regexp.Compile(text)
		switch {
		case err != nil:
			return fmt.Errorf("random: %w", err)
		case pattern.MatchString(""):
			return fmt.Errorf("random: %q matches an empty text; write a pattern that matches only the values, such as [0-9A-Z]{26}", text)
		}
		a.Random = append(a.Random, pattern)
	}
	return nil
}
