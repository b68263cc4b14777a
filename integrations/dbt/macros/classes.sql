{#- Names of columns, quoted and separated by commas. -#}
{% macro quoted(names) %}
{%- if names is string or not names -%}
    {{ exceptions.raise_compiler_error("quasi_identifiers is a list of columns, such as [age, zip]") }}
{%- endif -%}
{%- for name in names -%}
    {{ adapter.quote(name) }}{{ ', ' if not loop.last }}
{%- endfor -%}
{% endmacro %}

{#- Each row as the number of its class and the number of its sensitive value in ascending order. Numbers also where a value is
    missing, so that the tests join without comparing missing values. -#}
{% macro coded(model, quasi_identifiers, sensitive) %}
select
    dense_rank() over (order by {{ closeknit.quoted(quasi_identifiers) }}) as class_number,
    dense_rank() over (order by {{ adapter.quote(sensitive) }}) as value_number,
    {{ adapter.quote(sensitive) }} as sensitive_value
from {{ model }}
{% endmacro %}
