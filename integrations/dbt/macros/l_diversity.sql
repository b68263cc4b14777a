{#- l-diversity: the known sensitive values of every class are diverse. Returns the classes in which they are not.
    distinct: at least l different values; frequency: the most frequent one has at most 1/l of the rows with a known value;
    entropy: the entropy of the values is at least ln(l). A class without a known value discloses none. -#}
{% test l_diversity(model, l, sensitive, quasi_identifiers, kind='distinct') %}

{%- if kind not in ('distinct', 'frequency', 'entropy') -%}
    {{ exceptions.raise_compiler_error("l_diversity has kind '" ~ kind ~ "'; choose distinct, frequency or entropy") }}
{%- endif %}
with coded as (
    {{ closeknit.coded(model, quasi_identifiers, sensitive) }}
),

counted as (
    select class_number, value_number, count(*) as value_rows
    from coded
    where sensitive_value is not null
    group by class_number, value_number
),

sized as (
    select class_number, value_rows, sum(value_rows) over (partition by class_number) as class_rows
    from counted
)

select class_number, count(*) as values_in_class, max(value_rows) as most_frequent, max(class_rows) as rows_in_class
from sized
group by class_number
{% if kind == 'distinct' -%}
having count(*) < {{ l }}
{%- elif kind == 'frequency' -%}
having max(value_rows) * {{ l }} > max(class_rows)
{%- else -%}
having -sum((value_rows * 1.0 / class_rows) * ln(value_rows * 1.0 / class_rows)) < ln({{ l }}) - 1e-9
{%- endif %}

{% endtest %}
