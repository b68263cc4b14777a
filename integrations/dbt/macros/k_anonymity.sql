{#- k-anonymity: every class of equal quasi-identifiers has at least k rows; with `person`, at least k persons.
    Returns the classes that do not. Two missing quasi-identifiers are equal. -#}
{% test k_anonymity(model, k, quasi_identifiers, person=none) %}

{%- set counted = 'count(*)' if person is none else 'count(distinct ' ~ adapter.quote(person) ~ ')' -%}
select {{ closeknit.quoted(quasi_identifiers) }}, {{ counted }} as class_size
from {{ model }}
group by {{ closeknit.quoted(quasi_identifiers) }}
having {{ counted }} < {{ k }}

{% endtest %}
