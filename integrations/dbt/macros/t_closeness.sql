{#- t-closeness: in every class the sensitive values are distributed nearly as in the whole model, at most t away. Returns the
    classes that are farther. equal: half the sum of the differences; ordered: the earth mover's distance along the values in
    ascending order. Both sides are multiplied by the sizes, so t is compared with whole numbers and equality is exact. -#}
{% test t_closeness(model, t, sensitive, quasi_identifiers, distance='equal') %}

{%- if distance not in ('equal', 'ordered') -%}
    {{ exceptions.raise_compiler_error("t_closeness has distance '" ~ distance ~ "'; choose equal or ordered") }}
{%- endif %}
with coded as (
    {{ closeknit.coded(model, quasi_identifiers, sensitive) }}
),

classes as (
    select class_number, count(*) as class_rows from coded group by class_number
),

reference as (
    select value_number, count(*) as value_rows from coded group by value_number
),

whole as (
    select sum(value_rows) as all_rows, count(*) as all_values from reference
),

cells as (
    select class_number, value_number, count(*) as cell_rows from coded group by class_number, value_number
),

differences as (
    select
        classes.class_number,
        classes.class_rows,
        whole.all_rows,
        whole.all_values,
        reference.value_number,
        coalesce(cells.cell_rows, 0) * whole.all_rows - reference.value_rows * classes.class_rows as difference
    from classes
    cross join reference
    cross join whole
    left join cells
        on cells.class_number = classes.class_number and cells.value_number = reference.value_number
),

moved as (
    select
        *,
        sum(difference) over (
            partition by class_number order by value_number rows between unbounded preceding and current row
        ) as carried
    from differences
)

select class_number, class_rows, sum(abs({{ 'carried' if distance == 'ordered' else 'difference' }})) as distance_times_sizes
from moved
group by class_number, class_rows, all_rows, all_values
having sum(abs({{ 'carried' if distance == 'ordered' else 'difference' }}))
    > {{ t }} * {{ '(all_values - 1)' if distance == 'ordered' else '2' }} * class_rows * all_rows

{% endtest %}
