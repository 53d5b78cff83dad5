//! Routes that are described as they are added, so that no path is served that the OpenAPI
//! document lacks, and none is described that is not served.

use axum::Router;
use axum::routing::MethodRouter;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{
    ComponentsBuilder, KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{
    Content, HttpMethod, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, Paths,
    PathsBuilder, RefOr, Required, Response, ResponseBuilder, Schema,
};
use utoipa::{PartialSchema, ToSchema};

use super::WebState;
use super::api_error::ErrorAnswer;
use super::parameters::{Form, Parameter};

/// What an address answers with.
pub(super) struct Answer {
    media_type: &'static str,
    meaning: &'static str,
    schema: RefOr<Schema>,
    parts: Vec<(String, RefOr<Schema>)>,
}

impl Answer {
    /// One `T` as JSON.
    pub(super) fn json<T: ToSchema>(meaning: &'static str) -> Self {
        Self::of::<T>("application/json", meaning)
    }

    /// A stream of events, the data of each a `T`.
    pub(super) fn events<T: ToSchema>(meaning: &'static str) -> Self {
        Self::of::<T>("text/event-stream", meaning)
    }

    /// Text of this type.
    pub(super) fn text(media_type: &'static str, meaning: &'static str) -> Self {
        Self {
            media_type,
            meaning,
            schema: ObjectBuilder::new().schema_type(Type::String).into(),
            parts: Vec::new(),
        }
    }

    fn of<T: ToSchema>(media_type: &'static str, meaning: &'static str) -> Self {
        let mut parts = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut parts);
        Self {
            media_type,
            meaning,
            schema: reference::<T>(),
            parts,
        }
    }
}

/// An address and what it does.
pub(super) struct Description {
    /// The path, with names in braces for the parts that vary.
    pub(super) path: &'static str,
    /// What it is for, in a few words.
    pub(super) summary: &'static str,
    /// The parameters of its query.
    pub(super) parameters: &'static [&'static Parameter],
    /// What comes back.
    pub(super) answer: Answer,
    /// Statuses other than success, and when they come.
    pub(super) errors: &'static [(u16, &'static str)],
}

/// Routes, and the description of each.
pub(super) struct Described {
    router: Router<WebState>,
    paths: PathsBuilder,
    components: ComponentsBuilder,
}

impl Described {
    /// No route yet.
    pub(super) fn new() -> Self {
        let mut errors = vec![(ErrorAnswer::name().into_owned(), ErrorAnswer::schema())];
        ErrorAnswer::schemas(&mut errors);
        Self {
            router: Router::new(),
            paths: Paths::builder(),
            components: ComponentsBuilder::new().schemas_from_iter(errors),
        }
    }

    /// Adds a route that is answered by `handler`.
    pub(super) fn get(self, description: Description, handler: MethodRouter<WebState>) -> Self {
        let mut operation = OperationBuilder::new()
            .operation_id(Some(operation_id(description.path)))
            .summary(Some(description.summary));
        for name in names_in(description.path) {
            operation = operation.parameter(path_parameter(name));
        }
        for parameter in description.parameters {
            operation = operation.parameter(query_parameter(parameter));
        }
        let answer = description.answer;
        let success = ResponseBuilder::new()
            .description(answer.meaning)
            .content(answer.media_type, Content::new(Some(answer.schema)));
        operation = operation.response("200", success);
        for (status, when) in description.errors {
            operation = operation.response(status.to_string(), error(when));
        }
        Self {
            router: self.router.route(description.path, handler),
            paths: self
                .paths
                .path(description.path, PathItem::new(HttpMethod::Get, operation)),
            components: self.components.schemas_from_iter(answer.parts),
        }
    }

    /// The routes, and the document that describes them.
    pub(super) fn finish(self) -> (Router<WebState>, OpenApi) {
        let license = LicenseBuilder::new()
            .name("Apache-2.0")
            .identifier(Some("Apache-2.0"));
        let info = InfoBuilder::new()
            .title("skewtap collector")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(
                "Verdicts on where the time between a client's span and a server's span went. \
                 A field is there and null where it is unknown. Lengths are in seconds. Fields \
                 may be added; what is there keeps its meaning.",
            ))
            .license(Some(license.build()));
        let mut components = self.components.build();
        for schema in components.schemas.values_mut() {
            if let RefOr::T(Schema::Object(object)) = schema {
                let there: Vec<String> = object
                    .properties
                    .iter()
                    .filter(|(name, schema)| object.required.contains(name) || may_be_null(schema))
                    .map(|(name, _)| name.clone())
                    .collect();
                object.required = there.into_iter().collect();
            }
        }
        let document = OpenApiBuilder::new()
            .info(info)
            .paths(self.paths)
            .components(Some(components));
        (self.router, document.build())
    }
}

/// Whether a field of this schema is there and null where there is nothing to say.
fn may_be_null(schema: &RefOr<Schema>) -> bool {
    let is_null = |kind: &SchemaType| match kind {
        SchemaType::Type(kind) => *kind == Type::Null,
        SchemaType::Array(kinds) => kinds.contains(&Type::Null),
        SchemaType::AnyValue => false,
    };
    match schema {
        RefOr::T(Schema::Object(object)) => is_null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => is_null(&array.schema_type),
        RefOr::T(Schema::OneOf(any)) => any.items.iter().any(may_be_null),
        _ => false,
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    utoipa::openapi::Ref::from_schema_name(T::name()).into()
}

fn error(when: &str) -> Response {
    ResponseBuilder::new()
        .description(when)
        .content(
            "application/json",
            Content::new(Some(reference::<ErrorAnswer>())),
        )
        .build()
}

/// `/api/v1/gaps/series` is `get_gaps_series`.
fn operation_id(path: &str) -> String {
    let parts = path.trim_start_matches("/api/v1").split('/');
    let words = parts.filter(|part| !part.is_empty());
    words.fold("get".to_owned(), |id, part| {
        let word = part.trim_matches(['{', '}']).replace('.', "_");
        format!("{id}_{word}")
    })
}

fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    let parts = path.split('/');
    parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> ParameterBuilder {
    let (digits, meaning) = match name {
        "trace_id" => (32, "The trace."),
        _ => (16, "The client's span."),
    };
    let hex = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(format!("^[0-9a-fA-F]{{{digits}}}$")));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(meaning))
        .schema(Some(hex))
}

fn query_parameter(parameter: &Parameter) -> ParameterBuilder {
    let schema = match parameter.form {
        Form::Flag => ObjectBuilder::new().schema_type(Type::Boolean),
        Form::Text => ObjectBuilder::new().schema_type(Type::String),
        Form::Count { most, otherwise } => ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(1))
            .maximum(Some(most))
            .default(Some(otherwise.into())),
    };
    ParameterBuilder::new()
        .name(parameter.name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(parameter.meaning))
        .schema(Some(schema))
        .example(Some(parameter.example.into()))
}
