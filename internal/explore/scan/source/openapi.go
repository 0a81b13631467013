package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/xeipuuv/gojsonpointer"

	"github.com/oversell/oversell/internal/explore/app"
)

// A document is an OpenAPI document. The package does not validate it. It reads only the parts for requests: paths,
// methods, parameters and bodies with their examples, and references within the document.
type document map[string]any

// methods are the HTTP methods of operations, in the order of the OpenAPI specification.
var methods = []string{"get", "post", "put", "patch", "delete", "head", "options"}

// OpenAPI reads the operations of an OpenAPI 3 document, in YAML or JSON.
func OpenAPI(text []byte, origin string) (requests []app.Request, unused []string, _ error) {
	var d document
	if err := yaml.Unmarshal(text, &d); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, nil, fmt.Errorf("it is no OpenAPI document: %s", first)
	}
	if version := fmt.Sprint(d["openapi"]); !strings.HasPrefix(version, "3.") {
		return nil, nil, errors.New("it is no OpenAPI 3 document (no key openapi: 3.x); convert Swagger 2 with converter.swagger.io, or list requests in the file of --app")
	}
	base := strings.TrimSuffix(origin, "/") + d.basePath()
	paths := d.object(d["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.object(paths[path])
		for _, method := range methods {
			operation := d.object(item[method])
			if operation == nil {
				continue
			}
			r, err := d.request(base, path, strings.ToUpper(method), append(d.list(item["parameters"]), d.list(operation["parameters"])...), operation)
			if err != nil {
				unused = append(unused, fmt.Sprintf("%s %s: %v", strings.ToUpper(method), path, err))
				continue
			}
			requests = append(requests, r)
		}
	}
	return requests, unused, nil
}

func (d document) basePath() string {
	for _, s := range d.list(d["servers"]) {
		if u, err := url.Parse(fmt.Sprint(d.object(s)["url"])); err == nil {
			return strings.TrimSuffix(u.Path, "/")
		}
	}
	return ""
}

func (d document) request(base, path, method string, parameters []any, operation map[string]any) (r app.Request, _ error) {
	r.Method = method
	query := url.Values{}
	for _, one := range parameters {
		p := d.object(one)
		name, in, required := fmt.Sprint(p["name"]), fmt.Sprint(p["in"]), p["required"] == true
		value, found := d.exampleOf(p)
		switch {
		case !found && (required || in == "path"):
			return r, fmt.Errorf("its parameter %s has no example: add `example:` to it", name)
		case !found || in == "cookie":
		case in == "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value)))
		case in == "query":
			query.Set(name, fmt.Sprint(value))
		case in == "header":
			addHeader(&r, name, fmt.Sprint(value))
		}
	}
	if strings.Contains(path, "{") {
		return r, errors.New("a parameter in its path is not described")
	}
	r.URL = base + handedOn(path)
	if len(query) > 0 {
		r.URL += "?" + handedOn(query.Encode())
	}
	return r, d.body(&r, d.object(operation["requestBody"]))
}

func (d document) body(r *app.Request, body map[string]any) error {
	content := d.object(body["content"])
	if content == nil {
		return nil
	}
	for _, kind := range []string{"application/json", "application/x-www-form-urlencoded"} {
		media := d.object(content[kind])
		if media == nil {
			continue
		}
		value, found := d.exampleOf(media)
		if !found {
			if body["required"] == true {
				return errors.New("its body has no example: add `example:` to it")
			}
			return nil
		}
		addHeader(r, "Content-Type", kind)
		if fields, isMap := value.(map[string]any); isMap && kind != "application/json" {
			form := url.Values{}
			for name, v := range fields {
				form.Set(name, fmt.Sprint(v))
			}
			r.Body = handedOn(form.Encode())
			return nil
		}
		if text, isText := value.(string); isText && kind != "application/json" {
			r.Body = text
			return nil
		}
		text, err := json.Marshal(value)
		r.Body = string(text)
		return err
	}
	if r.Method == http.MethodGet || body["required"] != true {
		return nil
	}
	return fmt.Errorf("its body is neither JSON nor a form, but %s", strings.Join(slices.Sorted(maps.Keys(content)), ", "))
}

// exampleOf returns the example of a parameter or a body, or else the example of its schema.
func (d document) exampleOf(of map[string]any) (any, bool) {
	if v, found := d.example(of, deepest); found {
		return v, true
	}
	return d.example(d.object(of["schema"]), deepest)
}

// deepest is the maximum depth of nested schemas in an example, since a schema may contain itself.
const deepest = 8

// example returns an example. For a schema without one, it combines the examples of the properties.
// Then each required property needs an example.
func (d document) example(of map[string]any, depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	if v, given := of["example"]; given {
		return v, true
	}
	switch all := of["examples"].(type) {
	case map[string]any: // examples of a parameter or a body
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if v, given := d.object(all[name])["value"]; given {
				return v, true
			}
		}
	case []any: // examples of a schema, since OpenAPI 3.1
		if len(all) > 0 {
			return all[0], true
		}
	}
	for _, key := range []string{"default", "const"} {
		if v, given := of[key]; given {
			return v, true
		}
	}
	if all := d.list(of["enum"]); len(all) > 0 {
		return all[0], true
	}
	return d.composed(of, depth-1)
}

// composed makes the example of a schema from the examples of its parts.
func (d document) composed(of map[string]any, depth int) (any, bool) {
	if items := d.object(of["items"]); items != nil {
		v, found := d.example(items, depth)
		return []any{v}, found
	}
	properties := map[string]any{}
	required := d.list(of["required"])
	maps.Copy(properties, d.object(of["properties"]))
	for _, part := range d.list(of["allOf"]) {
		p := d.object(part)
		maps.Copy(properties, d.object(p["properties"]))
		required = append(required, d.list(p["required"])...)
	}
	value := map[string]any{}
	for name, schema := range properties {
		if v, found := d.example(d.object(schema), depth); found {
			value[name] = v
		}
	}
	for _, name := range required {
		if _, found := value[fmt.Sprint(name)]; !found {
			return nil, false
		}
	}
	return value, len(value) > 0
}

// object returns a value of the document as a map; nil if it is not a map. It follows references within
// the document.
func (d document) object(v any) map[string]any {
	for range deepest { // a reference may lead to itself
		m, _ := v.(map[string]any)
		to, refers := m["$ref"].(string)
		if !refers {
			return m
		}
		at, err := gojsonpointer.NewJsonPointer(strings.TrimPrefix(to, "#"))
		if err != nil { // a reference to another document
			return nil
		}
		v, _, _ = at.Get(map[string]any(d))
	}
	return nil
}

func (d document) list(v any) []any {
	all, _ := v.([]any)
	return all
}
