package stripesim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
)

// resources are the objects that the local Stripe answers with.
var resources = []string{
	"api_errors", "charge", "confirmation_token", "deleted_webhook_endpoint", "dispute", "event", "payment_intent",
	"payment_method", "refund", "webhook_endpoint",
}

// schemas are the objects of Stripe's own specification, of API version 2024-09-30: the nearest one that is published
// as a module, and equal to 2024-06-20 for everything here. Only what the resources are made of is loaded, which takes
// a tenth of the time; other resources inside them, a customer or an invoice, may be any object, for here they are null.
var schemas = sync.OnceValue(func() openapi3.Schemas {
	var spec struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(embedded.OpenAPISpec, &spec); err != nil {
		panic(err)
	}
	needed := map[string]json.RawMessage{}
	reference := regexp.MustCompile(`"#/components/schemas/([^"]+)"`)
	var need func(string)
	need = func(name string) {
		if needed[name] != nil {
			return
		}
		needed[name] = spec.Components.Schemas[name]
		if bytes.Contains(needed[name], []byte(`"x-resourceId"`)) && !slices.Contains(resources, name) {
			needed[name] = json.RawMessage(`{"type":"object"}`)
		}
		for _, match := range reference.FindAllSubmatch(needed[name], -1) {
			need(string(match[1]))
		}
	}
	for _, name := range resources {
		need(name)
	}
	pruned, err := json.Marshal(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Stripe", "version": "pruned"}, "paths": map[string]any{},
		"components": map[string]any{"schemas": needed},
	})
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(pruned)
	if err != nil {
		panic(err)
	}
	return doc.Components.Schemas
})

// undocumented are fields that Stripe really sends and its specification does not have.
var undocumented = []string{"source"}

// requireStripe fails the test when an answer is not what Stripe's specification allows: types, enumerations, required
// fields, and no field that the specification does not know.
func requireStripe(t *testing.T, raw []byte) {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	if failure, ok := v["error"]; ok {
		requireSchema(t, "api_errors", failure)
		return
	}
	requireObject(t, v)
}

func requireObject(t *testing.T, v map[string]any) {
	t.Helper()
	object, _ := v["object"].(string)
	if object == "list" {
		for _, element := range v["data"].([]any) {
			requireObject(t, element.(map[string]any))
		}
		require.ElementsMatch(t, []string{"object", "data", "has_more", "url"}, keys(v))
		return
	}
	if v["deleted"] == true {
		object = "deleted_" + object
	}
	requireSchema(t, object, v)
	if object == "event" {
		// The specification does not say what is in an event.
		requireObject(t, v["data"].(map[string]any)["object"].(map[string]any))
	}
}

func requireSchema(t *testing.T, name string, v any) {
	t.Helper()
	schema := schemas()[name]
	require.NotNil(t, schema, "no schema %q", name)
	require.NoError(t, schema.Value.VisitJSON(v, openapi3.MultiErrors()), "%s: %v", name, v)
	require.Empty(t, unknown(schema.Value, v, name), "fields that Stripe does not have")
}

// unknown returns the fields that no variant of the schema has.
func unknown(schema *openapi3.Schema, v any, path string) []string {
	if len(schema.AnyOf) > 0 {
		for _, variant := range schema.AnyOf {
			if variant.Value.VisitJSON(v) == nil {
				return unknown(variant.Value, v, path)
			}
		}
		return nil
	}
	var found []string
	switch v := v.(type) {
	case []any:
		if schema.Items != nil {
			for i, element := range v {
				found = append(found, unknown(schema.Items.Value, element, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	case map[string]any:
		if schema.AdditionalProperties.Schema != nil || schema.Properties == nil {
			return nil // free names, such as metadata
		}
		for name, element := range v {
			property, known := schema.Properties[name]
			switch {
			case known:
				found = append(found, unknown(property.Value, element, path+"."+name)...)
			case !slices.Contains(undocumented, name):
				found = append(found, path+"."+name)
			}
		}
	}
	return found
}

func keys(v map[string]any) []string {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shape returns the names of all fields, as paths; what stands in metadata is the caller's own.
func shape(v any, path string) []string {
	var names []string
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			names = append(names, shape(element, path+"[]")...)
		}
	case map[string]any:
		for _, name := range keys(v) {
			names = append(names, path+"."+name)
			if name != "metadata" {
				names = append(names, shape(v[name], path+"."+name)...)
			}
		}
	}
	return names
}

func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var v map[string]any
	require.NoError(t, decoder.Decode(&v))
	return v
}
