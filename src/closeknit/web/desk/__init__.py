"""The logic behind the pages: plain functions over closeknit's own nouns that give records for a page to show.

No web framework is known here. A *draft* is the recipe under way as plain forms; every change gives a new draft.
"""
