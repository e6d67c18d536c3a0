package manifest

// The objects as they are written, with no more fields than are used. The generated types of Kubernetes would bring all others
// along, and apiextensions a module of its own.

type head struct {
	APIVersion string   `json:"apiVersion" yaml:"apiVersion"`
	Kind       string   `json:"kind"       yaml:"kind"`
	Metadata   metadata `json:"metadata"   yaml:"metadata"`
}

type metadata struct {
	Name      string `json:"name"                yaml:"name"`
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
}

type role struct {
	head  `yaml:",inline"`
	Rules []rule `json:"rules" yaml:"rules"`
}

type rule struct {
	APIGroups     []string `json:"apiGroups"     yaml:"apiGroups,flow"`
	Resources     []string `json:"resources"     yaml:"resources,flow"`
	ResourceNames []string `json:"resourceNames,omitempty" yaml:"resourceNames,omitempty,flow"`
	Verbs         []string `json:"verbs"         yaml:"verbs,flow"`
}

type roleBinding struct {
	head     `yaml:",inline"`
	Subjects []subject `json:"subjects" yaml:"subjects"`
	RoleRef  roleRef   `json:"roleRef"  yaml:"roleRef"`
}

type subject struct {
	Kind      string `json:"kind"      yaml:"kind"`
	Name      string `json:"name"      yaml:"name"`
	Namespace string `json:"namespace" yaml:"namespace"`
}

type roleRef struct {
	APIGroup string `json:"apiGroup" yaml:"apiGroup"`
	Kind     string `json:"kind"     yaml:"kind"`
	Name     string `json:"name"     yaml:"name"`
}

type leaseObject struct {
	head `yaml:",inline"`
	Spec leaseSpec `json:"spec" yaml:"spec"`
}

// leaseSpec is empty for a native lease, and where the CustomResourceDefinition has defaults.
type leaseSpec struct {
	Owner *string `json:"owner,omitempty" yaml:"owner,omitempty"`
	Time  *int64  `json:"time,omitempty"  yaml:"time,omitempty"`
}

type definition struct {
	head `yaml:",inline"`
	Spec definitionSpec `json:"spec" yaml:"spec"`
}

type definitionSpec struct {
	Group    string    `json:"group"    yaml:"group"`
	Scope    string    `json:"scope"    yaml:"scope"`
	Names    names     `json:"names"    yaml:"names"`
	Versions []version `json:"versions" yaml:"versions"`
}

type names struct {
	Kind     string `json:"kind"     yaml:"kind"`
	ListKind string `json:"listKind" yaml:"listKind"`
	Singular string `json:"singular" yaml:"singular"`
	Plural   string `json:"plural"   yaml:"plural"`
}

type version struct {
	Name    string    `json:"name"                     yaml:"name"`
	Served  bool      `json:"served"                   yaml:"served"`
	Storage bool      `json:"storage"                  yaml:"storage"`
	Schema  schema    `json:"schema"                   yaml:"schema"`
	Columns []columns `json:"additionalPrinterColumns" yaml:"additionalPrinterColumns"`
}

type schema struct {
	Root property `json:"openAPIV3Schema" yaml:"openAPIV3Schema"`
}

type property struct {
	Type        string              `json:"type"                  yaml:"type"`
	Format      string              `json:"format,omitempty"      yaml:"format,omitempty"`
	Description string              `json:"description,omitempty" yaml:"description,omitempty"`
	Default     any                 `json:"default,omitempty"     yaml:"default,omitempty"`
	Properties  map[string]property `json:"properties,omitempty"  yaml:"properties,omitempty"`
}

type columns struct {
	Name        string `json:"name"                  yaml:"name"`
	Type        string `json:"type"                  yaml:"type"`
	Description string `json:"description,omitempty" yaml:"description,omitempty"`
	JSONPath    string `json:"jsonPath"              yaml:"jsonPath"`
}
